package store_test

import "flag"

// Each round of a history costs a database what the rounds before left in it, and the race detector makes that ten times as
// much. go test -rapid.checks=1000 does more.
func init() {
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
}
