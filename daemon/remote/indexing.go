package remote

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Indexing returns how many transcripts a server stores, and how many of them have lines that its lists and its search
// do not show yet. Both counts are of all users.
func Indexing(ctx context.Context, c *Client) (left, all int64, err error) {
	answer, err := c.do(ctx, http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	left = -1
	for lines := bufio.NewScanner(io.LimitReader(answer.Body, maxDocument)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "ccship_server_derive_lag_streams":
			left = int64(n)
		case name == "ccship_server_store_streams":
			all = int64(n)
		}
	}
	if left < 0 {
		return 0, 0, noReading(io.ErrUnexpectedEOF)
	}
	return left, max(all, left), nil
}
