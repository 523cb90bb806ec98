-- Times are unix microseconds in UTC. Text compares by its bytes.
-- Each statement commits by itself. An index is part of its table, so that a migration
-- that was cut off has few states to go on from.

CREATE TABLE users (
	id            BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
	name          VARCHAR(256)  NOT NULL,
	email         VARCHAR(256)  NOT NULL,
	phone         VARCHAR(256)  NOT NULL,
	avatar        VARCHAR(2048) NOT NULL,
	status        INT           NOT NULL,
	city_id       BIGINT        NOT NULL,
	last_login_at BIGINT,
	created_at    BIGINT        NOT NULL,
	updated_at    BIGINT        NOT NULL,
	-- The active query: equality columns first, then the sorted ones. Both indexes cover
	-- it, and end where LIMIT says.
	INDEX users_active_by_city (status, city_id, last_login_at DESC, id DESC),
	INDEX users_active         (status, last_login_at DESC, id DESC)
) ENGINE = InnoDB, DEFAULT CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

-- The large column, apart: the pages of users stay small and hot.
CREATE TABLE addresses (
	user_id BIGINT     NOT NULL PRIMARY KEY,
	address MEDIUMTEXT NOT NULL,
	FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
) ENGINE = InnoDB, DEFAULT CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

-- Keys are bytes: even utf8mb4_bin takes "a" and "a " for the same.
CREATE TABLE user_attributes (
	user_id BIGINT         NOT NULL,
	"key"   VARBINARY(255) NOT NULL,
	value   TEXT           NOT NULL,
	PRIMARY KEY (user_id, "key"),
	FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
) ENGINE = InnoDB, DEFAULT CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;

CREATE TABLE members (
	user_id BIGINT       NOT NULL PRIMARY KEY,
	level   VARCHAR(256) NOT NULL,
	points  BIGINT       NOT NULL,
	FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
) ENGINE = InnoDB, DEFAULT CHARACTER SET utf8mb4, COLLATE utf8mb4_bin;
