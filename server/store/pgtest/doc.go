// Package pgtest runs real PostgreSQL clusters for tests: in a folder of their own, on a Unix socket only, as an
// unprivileged user, ended by process id. It knows no SQL driver and no schema.
package pgtest
