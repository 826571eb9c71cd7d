package state

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// Reading goes on when a backlog that filled the disk has drained: the disk stays full, but the file is empty.
func TestCapacityInsideTheFile(t *testing.T) {
	const head = 100 << 10
	free := uint64(1 << 40)
	db := open(t, Options{HeadRoom: head, FreeDisk: func(string) (uint64, uint64, error) { return free, 1 << 40, nil }})
	var seqs []uint64
	for i := range int64(40) {
		seqs = append(seqs, commit(t, db, advance(1, i, i+1, 100<<10))...)
	}
	free = head / 2
	db.capacity.asked = db.capacity.asked.Add(-diskEvery)
	kit.Check(t, !db.HasCapacity(true) && db.Outbox.Usage().Full == "disk",
		"there is capacity on a full disk, and a full file")
	settle(t, db, 1, seqs...)
	db.capacity.asked = db.capacity.asked.Add(-diskEvery)
	if !db.HasCapacity(true) {
		t.Errorf("no capacity, though %d bytes of the file are empty", db.Empty())
	}
}
