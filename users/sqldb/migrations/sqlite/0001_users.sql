-- Times are unix microseconds in UTC.

-- AUTOINCREMENT: an id is never given out twice, so whatever is remembered about a
-- deleted user, in a cache or by a client, never turns into another one.
CREATE TABLE users (
	id            INTEGER PRIMARY KEY AUTOINCREMENT,
	name          TEXT    NOT NULL,
	email         TEXT    NOT NULL,
	phone         TEXT    NOT NULL,
	avatar        TEXT    NOT NULL,
	status        INTEGER NOT NULL,
	city_id       INTEGER NOT NULL,
	last_login_at INTEGER,
	created_at    INTEGER NOT NULL,
	updated_at    INTEGER NOT NULL
) STRICT;

-- The active query: equality columns first, then the sorted ones. Both indexes cover
-- it, and end where LIMIT says.
CREATE INDEX users_active_by_city ON users (status, city_id, last_login_at DESC, id DESC);
CREATE INDEX users_active         ON users (status, last_login_at DESC, id DESC);

-- The large column, apart: the pages of users stay small and hot.
CREATE TABLE addresses (
	user_id INTEGER PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	address TEXT    NOT NULL
) STRICT;

-- WITHOUT ROWID: a user's attributes lie together, in the order of their keys.
CREATE TABLE user_attributes (
	user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	key     TEXT    NOT NULL,
	value   TEXT    NOT NULL,
	PRIMARY KEY (user_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE members (
	user_id INTEGER PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	level   TEXT    NOT NULL,
	points  INTEGER NOT NULL
) STRICT;
