package protocol

import "slices"

// maxGaps bounds the counts that Receipts remembers as not seen yet.
const maxGaps = 256

// Receipts are the counts with which a store acknowledged writes. A store counts each write of a machine once, so two
// acknowledgements with one count mean that it went back in time in between: writes that were in flight then are in
// one of its two histories only, and the counts that follow agree. The zero Receipts have seen nothing.
type Receipts struct {
	store string
	high  int64   // the highest count so far
	gaps  []int64 // counts below high that were not seen, ascending: of answers that are lost, late, or another writer's
}

// ReceiptsAfter has seen all counts of a known ledger.
func ReceiptsAfter(known *Ledger) Receipts { return Receipts{store: known.Store, high: known.Count} }

// Repeats takes the ledger of an acknowledgement, and reports whether its count was seen before, or
// is another store's.
func (r *Receipts) Repeats(at *Ledger) bool {
	if at.Store == "" {
		return false // it counted nothing
	}
	if r.store == "" { // a store takes writes of a machine that knows none only if it has no others of that machine
		r.store = at.Store
	}
	if at.Store != r.store {
		return true
	}
	if at.Count <= r.high {
		i, missing := slices.BinarySearch(r.gaps, at.Count)
		if missing {
			r.gaps = slices.Delete(r.gaps, i, i+1)
		}
		return !missing
	}
	for n := max(r.high+1, at.Count-maxGaps); n < at.Count; n++ {
		r.gaps = append(r.gaps, n)
	}
	r.high = at.Count
	if more := len(r.gaps) - maxGaps; more > 0 {
		r.gaps = slices.Delete(r.gaps, 0, more)
	}
	return false
}
