// Package sqldb keeps users in an SQL database: SQLite, embedded, without cgo. A DB
// is all three sources of package users: Rows, AttributeSource and MemberSource.
//
// # Connections
//
// A database file is in WAL mode. Reads use a pool of read-only connections, which
// neither wait for the writer nor hold it up. All writes use one connection, because
// SQLite has one writer at a time anyway: they queue in Go, first come first served
// and under their contexts, instead of polling for a lock.
//
// An in-memory database has one connection for both. Several could share one, but
// then readers and the writer would lock each other out table by table, and fail or
// poll where they now wait their turn.
//
// # Durability
//
// synchronous is FULL: a commit has reached the disk before it is reported. The
// default of WAL mode in many programs, NORMAL, survives kill -9 too, but loses the
// last commits when the power goes, after their callers were told that they are
// stored. The price is one fsync per write.
//
// # Caveats
//
// Open brings the schema up to date and refuses a database of a newer program.
// Other processes may use the file at the same time; a writer of theirs makes ours
// wait for up to BusyTimeout. The file must not be on a network file system: WAL
// needs shared memory.
package sqldb
