// Package testserver starts real MariaDB, Postgres and Redis servers for tests, each
// in a directory of its own on a loopback port of its own.
//
// A server that a test starts ends with the test. One that all tests of a binary share
// belongs to a [Shared], and ends after the last of them; Database gives each test an
// empty database on it. Every server also ends when the test binary is killed.
//
// Servers are as durable as kill -9 of the server needs, and no more: they do not wait
// for the disk. Arguments of the caller come last and win, as in
//
//	testserver.MariaDB(t, "--innodb-flush-log-at-trx-commit=1")
//
// Where a server is not installed the test is skipped, and fails if CI is set.
package testserver
