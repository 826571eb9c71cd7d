// Package chaos makes trouble for the real programs, one kind after the other, and proves after each run that nothing
// is lost, nothing is wrong and nothing hangs: every line on disk is what the server answers, `ccship verify` finds
// both equal, and every program ended on request. It records how long recovery took and what was
// reported. `lab chaos` runs all of it, which takes hours; `lab chaos -quick` and `go test` run a short form.
package chaos
