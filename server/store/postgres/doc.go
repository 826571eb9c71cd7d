// Package postgres is a store in a PostgreSQL database, which several servers can use at once. Work that a failover
// interrupts is tried again; changes are announced to the other servers.
package postgres
