-- What has to be known to every instance, and outlive all of them.

-- Keys of creates, so that a retry does not make a second user. Digests are SHA-256.
CREATE TABLE idempotency_keys (
	digest     BLOB    PRIMARY KEY,
	content    BLOB    NOT NULL,
	user_id    INTEGER NOT NULL, -- 0 inside the transaction that creates the user
	created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- Ids that the shared cache could not be told to drop.
CREATE TABLE cache_voids (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	user_id    INTEGER NOT NULL,
	created_at INTEGER NOT NULL
) STRICT;
