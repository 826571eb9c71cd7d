package control

import (
	"encoding/json"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// document is what the tests need to know of the OpenAPI document.
type document struct {
	Paths      map[string]map[string]any
	Components struct {
		Schemas map[string]struct {
			Properties map[string]any
			Required   []string
		}
	}
}

func readDocument(t *testing.T) (d document) {
	t.Helper()
	text, err := json.Marshal(NewServer(&fake{}, slog.New(slog.DiscardHandler)).document())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Every route is described, and nothing else is.
func TestOpenAPIRoutes(t *testing.T) {
	want, got := []string{}, []string{}
	for path, methods := range NewServer(&fake{}, slog.New(slog.DiscardHandler)).routes {
		for method := range methods {
			if !strings.HasPrefix(path, "/debug/") {
				want = append(want, method+" "+path)
			}
		}
	}
	for path, methods := range readDocument(t).Paths {
		for method := range methods {
			got = append(got, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Every wire type is described, member by member: those that may be missing are optional.
func TestOpenAPITypes(t *testing.T) {
	schemas := readDocument(t).Components.Schemas
	described := map[string]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ.PkgPath() != reflect.TypeFor[Status]().PkgPath() || described[typ.Name()] {
			return
		}
		described[typ.Name()] = true
		members, required := map[string]bool{}, []string{}
		for _, field := range reflect.VisibleFields(typ) {
			if !field.Anonymous {
				name, omit, _ := strings.Cut(field.Tag.Get("json"), ",")
				members[name] = true
				if omit == "" {
					required = append(required, name)
				}
				walk(field.Type)
			}
		}
		s := schemas[typ.Name()]
		if diff := cmp.Diff(slices.Sorted(maps.Keys(members)), slices.Sorted(maps.Keys(s.Properties))); diff != "" {
			t.Errorf("%s: %s", typ.Name(), diff)
		}
		slices.Sort(required)
		if diff := cmp.Diff(required, slices.Sorted(slices.Values(s.Required)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s, what is always there: %s", typ.Name(), diff)
		}
	}
	for _, v := range []any{
		Status{}, SyncRequest{}, SyncResult{}, VerifyRequest{}, VerifyEvent{}, Sessions{}, OutboxList{}, DeadLetters{}, DeadRequest{}, DropServerRequest{}, DropServerResult{},
		DeadResult{}, PauseRequest{}, PauseState{}, FlushResult{}, ForgetRequest{}, ForgetResult{}, Excludes{}, ExcludeRequest{}, ReloadResult{}, Event{}, Error{},
		Messages{}, ClearResult{}, RemaskRequest{}, RemaskResult{},
		Checkpoints{}, CheckpointAnswer{}, CheckpointRequest{}, Budgets{}, BudgetRequest{}, PendingRequest{}, Pending{},
		Documents{}, DocumentRequest{}, LinkAnswerRequest{}, LinkAnswer{}, Init{}, ResendRequest{}, ResendResult{},
	} {
		walk(reflect.TypeOf(v))
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(schemas))); diff != "" {
		t.Errorf("types and schemas: %s", diff)
	}
}
