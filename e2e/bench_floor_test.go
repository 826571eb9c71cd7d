//go:build unix

package e2e

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// floorEnv turns the test binary into the benchmark's floor: its value is the server's URL, a space, and the folder.
const floorEnv = "CCSHIP_E2E_FLOOR"

// floorMain posts every line of every transcript with no durability at all, and prints the seconds that took.
func floorMain() int {
	url, dir, _ := strings.Cut(os.Getenv(floorEnv), " ")
	begin := time.Now()
	if err := kit.PostFloor(url, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(time.Since(begin).Seconds())
	return 0
}
