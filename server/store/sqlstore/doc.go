// Package sqlstore is what the two databases of package store share: artifacts, ledgers, accounts and filters in SQL
// that both understand through a Dialect, what is prepared before it is written, and the queue of batches that share a
// transaction. It knows no driver.
package sqlstore
