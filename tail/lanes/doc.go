// Package lanes has the orders in which files wait for a worker.
package lanes
