// Package connection opens SQLite databases whose connections keep the statements that they have compiled. Compiling
// most statements of the store costs more than running them.
package connection
