package main

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// outsideTest is a testing.TB where there is no test, for package testserver. It has
// what that package calls.
type outsideTest struct {
	testing.TB // nil
	cleanups   []func()
}

// failure is what ends a test, as a panic: Fatal must not return.
type failure struct{ error }

// Helper implements testing.TB.
func (t *outsideTest) Helper() {}

// Cleanup implements testing.TB.
func (t *outsideTest) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// Fatal implements testing.TB.
func (t *outsideTest) Fatal(args ...any) { panic(failure{errors.New(fmt.Sprint(args...))}) }

// Fatalf implements testing.TB.
func (t *outsideTest) Fatalf(format string, args ...any) {
	panic(failure{fmt.Errorf(format, args...)})
}

// Skip implements testing.TB: nothing can be measured without all servers.
func (t *outsideTest) Skip(args ...any) { t.Fatal(args...) }

// end runs what Cleanup was given, and makes a failure the error of the function that
// defers it.
func (t *outsideTest) end(err *error) {
	p := recover()
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
	switch f, ok := p.(failure); {
	case ok:
		*err = f.error
	case p != nil:
		panic(p)
	}
}
