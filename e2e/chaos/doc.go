// Package chaos makes trouble for the real programs, one kind after the other, and proves after each run that nothing
// is lost, nothing is wrong and nothing hangs: every line on disk is what the server answers, `ccship verify` finds
// both equal, and every program ended when it was told to. It records how long recovery took and what people were
// told. `make chaos` runs all of it, long, and writes docs/reliability.md; `go test` runs a short form.
package chaos
