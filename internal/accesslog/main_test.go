package accesslog

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if number, ok := os.LookupEnv(writerEnv); ok {
		os.Exit(runWriter(number))
	}
	goleak.VerifyTestMain(m)
}
