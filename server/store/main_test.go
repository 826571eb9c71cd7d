//go:build unix

package store_test

import (
	"os"
	"testing"

	"github.com/ccship/ccship/server/store/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }
