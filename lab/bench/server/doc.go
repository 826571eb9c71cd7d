// Package server measures ccship-server on both databases, in tests that run on request only: `lab server`. It
// uses what anybody can use, the HTTP API, the command line and the databases' catalogs, so that it measures other
// versions too.
package server
