// Package scenario says which loads servers are measured under, and measures one server
// under one of them.
//
// Every measurement is of a server that has just been started, on CPUs of its own, and
// has answered 1,000 of the same requests before. What interleaves servers and repeats
// rounds is not here, but in the commands run and compare.
package scenario
