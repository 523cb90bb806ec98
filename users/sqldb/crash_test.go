package sqldb

const crashEnv = "PINION_TEST_CRASH_DATABASE"

func createUntilKilled(string) int { return 1 }
