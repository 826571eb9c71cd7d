// Package upkeep does what a store needs done now and then while a server runs: it has lines packed, moved to cold
// storage, and what was abandoned removed. Several servers on one store may each do so.
package upkeep
