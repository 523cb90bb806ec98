// Package chart draws the plots of a report: horizontal bars with whiskers, small
// multiples of them, and lines that carry their name at their end. Each is an SVG document
// on a white card, so that it reads on a light page and on a dark one.
//
// The same input gives the same bytes. Nothing is measured in a font: text is anchored
// where it has to line up, and gets the room that a wide sans-serif would take.
//
// What is not a finite number is not drawn.
package chart
