package state

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
)

// fill sets every field below v to something that is not zero, and no two alike.
func fill(t *testing.T, v reflect.Value, n *int64) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, n)
		fill(t, value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), n)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(string(rune('a' + *n)))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	default:
		t.Fatalf("a field of kind %v", v.Kind())
	}
}

// A field that is added to what the rooms remember must reach the file, or it is lost at the next start.
func TestEveryFieldIsKept(t *testing.T) {
	var n int64
	var s Step
	fill(t, reflect.ValueOf(&s.Tracked).Elem(), &n)
	fill(t, reflect.ValueOf(&s.Routing).Elem(), &n)
	id := s.Tracked.File.ID
	s.Routing.Stream.ID, s.Routing.Dest = uint64(id), ""
	row := fileRow{tracked: s.Tracked, routing: s.Routing, dest: 7}
	got, err := decodeFileRow(id, row.encode(), nil)
	if err != nil || got != row {
		t.Errorf("file: %v\n%s", err, cmp.Diff(row, got, cmp.AllowUnexported(fileRow{})))
	}

	var b outbox.Batch
	fill(t, reflect.ValueOf(&b).Elem(), &n)
	b.Seq = 0 // in the key
	back, at, _, err := decodeBatchRow([]byte("key"), encodeBatchRow([]byte("key"), &b, 5))
	diff := cmp.Diff(b, back)
	kit.Check(t, err == nil && at == 5 && diff == "", "batch: %v at %d\n%s", err, at, diff)

	dead := deadRow{dest: 3}
	fill(t, reflect.ValueOf(&dead.stream).Elem(), &n)
	fill(t, reflect.ValueOf(&dead.letter).Elem(), &n)
	key := DeadKey{Seq: dead.letter.Batch.Seq, Line: dead.letter.Line}.bytes()
	again, err := decodeDeadRow(key, dead.encode())
	diff = cmp.Diff(dead, again, cmp.AllowUnexported(deadRow{}))
	kit.Check(t, err == nil && diff == "", "dead letter: %v\n%s", err, diff)

	var dest destRow
	fill(t, reflect.ValueOf(&dest).Elem(), &n)
	v := kit.Try(dest.encode(4)).Must(t)
	_, d, err := decodeDestRow(destKey(4), v)
	kit.Check(t, err == nil && reflect.DeepEqual(d, dest), "destination: %v %+v", err, d)
}

// A row of lines is the same bytes as before there were others.
func TestRowsOfLinesAreUnchanged(t *testing.T) {
	b := outbox.Batch{Kind: outbox.Opaque, Generation: 3, RewoundTo: 4, From: protocol.Position{Offset: 1, Line: 2}, To: protocol.Position{Offset: 3, Line: 4},
		NoNewline: true, Edges: []protocol.Edge{{Line: 2, Before: []byte(" "), After: []byte("\r")}}, Entries: 2, Raw: 5, Frame: []byte("frame")}
	const landed = "\x01\x00\x00\x00\x16;\xbfL[\x0e\x01\x06\b\x02\x04\x06\b\x04\n\x01D\x9b`,\n\x02\x04\x01 \x01\rframe"
	key := rowKey(1, 2, 3)
	v := encodeBatchRow(key, &b, 7)
	diff := cmp.Diff(landed, string(v))
	kit.Check(t, diff == "", "%v", diff)
	got, at, sum, err := decodeBatchRow(key, v)
	if err == nil {
		err = detach(&got, sum)
	}
	diff = cmp.Diff(b, got)
	kit.Check(t, err == nil && at == 7 && diff == "", "%v %v", err, diff)
	v[len(v)-8]++ // in the header
	kit.Err(t, "a damaged row is read", ErrCorrupt)(decodeBatchRow(key, v))
}
