package api

import (
	"reflect"
	"testing"

	"github.com/ccship/ccship/server/auth"
)

// TestPartsOfStore: each part of the API asks for few methods of the store.
func TestPartsOfStore(t *testing.T) {
	parts := []reflect.Type{reflect.TypeFor[auth.Store]()}
	for field := range reflect.TypeFor[stores]().Fields() {
		parts = append(parts, field.Type)
	}
	for _, part := range parts {
		if n := part.NumMethod(); n > 15 || n == 0 {
			t.Errorf("%v has %d methods, at most 15", part, n)
		}
	}
}
