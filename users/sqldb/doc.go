// Package sqldb keeps users in an SQL database: SQLite, embedded, without cgo; MySQL or
// MariaDB; or Postgres. A DB is all sources of package users: Rows, AttributeSource and
// MemberSource, and a VoidLog. The queries are the same for all; what differs is in
// dialect.go and in migrations/.
//
// # Names
//
//	sqlite:FILE, sqlite::memory:
//	mysql://USER:PASSWORD@HOST:PORT/NAME?tls=true|false|preferred|skip-verify&tls-ca=FILE
//	postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=...
//
// Users and passwords are escaped as in any URL, and never appear in an error. Postgres
// also takes sslrootcert, sslcert, sslkey, application_name, search_path and
// default_query_exec_mode; a pooler that hands connections on after each transaction, as
// PgBouncer can, wants "exec" for the last. Other parameters are refused.
//
// # Connections
//
// A database file of SQLite is in WAL mode. Reads use a pool of read-only connections,
// which neither wait for the writer nor hold it up. All writes use one connection,
// because SQLite has one writer at a time anyway: they queue in Go, first come first
// served and under their contexts, instead of polling for a lock. An in-memory database
// has one connection for both. Several could share one, but then readers and the writer
// would lock each other out table by table, and fail or poll where they now wait their
// turn.
//
// A server has one pool. It keeps the connections it has opened, and never has more than
// MaxConns. Calls that find none free wait until their contexts end. A connection whose
// call is cut off is closed, and the server may count it for a while longer.
//
// # Writes
//
// A write is one transaction, at READ COMMITTED. It is run again, up to three times,
// where it met with others in a deadlock. An error that matches users.ErrUnknownOutcome
// says that the connection or the time was lost after the commit had been sent; any other
// error says that nothing was stored.
//
// A create with a key claims the row of the key first, so creates with the same key
// queue, and the later ones find the user. Keys are forgotten after a day.
//
// # Durability
//
// With SQLite, synchronous is FULL: a commit has reached the disk before it is reported.
// The default of WAL mode in many programs, NORMAL, survives kill -9 too, but loses the
// last commits when the power goes, after their callers were told that they are stored.
// The price is one fsync per write. The durability of a server is its own setting.
//
// # Caveats
//
// Open brings the schema up to date, of instances that start together only one, and
// refuses a database of a newer program. The lock for it belongs to a session: a pooler
// in front of Postgres must not share sessions out by transaction while it is held. The
// statements of a MySQL migration commit one by one; one that was cut off goes on where it
// was.
//
// Postgres stores no NUL in a text, and neither server stores what is not UTF-8. Input
// that was validated holds neither.
//
// Other processes may use a SQLite file at the same time. A writer of theirs makes ours
// wait for up to BusyTimeout, and SQLite's way to wait favours who comes late; processes
// that all say Options.Peers queue in order instead. The file must not be on a network file system: WAL needs
// shared memory.
package sqldb
