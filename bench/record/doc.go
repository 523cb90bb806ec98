// Package record holds what a run of measurements writes down: the host, the peers,
// how the generator was checked, and every sample as it was taken. A report is made from
// such a file alone.
//
// Nothing in a Run is a verdict: medians, ratios, steadiness and whether a bar is met
// follow from the samples, by Spread and Ratios here and in package report.
//
// A Run is not safe for concurrent use while samples are added.
package record
