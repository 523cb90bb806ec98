-- What has to be known to every instance, and outlive all of them.

-- Keys of creates, so that a retry does not make a second user. Digests are SHA-256.
CREATE TABLE idempotency_keys (
	digest     BINARY(32) NOT NULL PRIMARY KEY,
	content    BINARY(32) NOT NULL,
	user_id    BIGINT     NOT NULL, -- 0 inside the transaction that creates the user
	created_at BIGINT     NOT NULL,
	INDEX idempotency_keys_by_age (created_at)
) ENGINE = InnoDB;

-- Ids that the shared cache could not be told to drop.
CREATE TABLE cache_voids (
	seq        BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	user_id    BIGINT NOT NULL,
	created_at BIGINT NOT NULL
) ENGINE = InnoDB;
