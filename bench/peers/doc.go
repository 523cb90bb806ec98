// Package peers lists the servers that pinion is measured beside, builds them, and says
// how each is started.
//
// A peer is set up as its own documentation advises for production; where that is, is
// said at the head of its main.go or its configuration. All have the same timeouts where
// they have such, and write no log of requests.
package peers
