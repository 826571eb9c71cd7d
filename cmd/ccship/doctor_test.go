package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/e2e/kit"
)

func TestDoctorJSON(t *testing.T) {
	var out strings.Builder
	a := &app{App: show.App{Stdout: &out}}
	r := showtest.DoctorReports()["fixed"]
	kit.Must(t, a.PrintJSON(r))
	showtest.Golden(t, filepath.Join("json", "doctor.json"), out.String())
	for _, part := range []any{r.Findings[0], r.Findings[1], r.Fixes[1]} {
		for _, name := range unset(reflect.ValueOf(part), "") {
			kit.Check(t, name == ".action" || name == ".Detail", "the golden document leaves out %s of %+v", name, part)
		}
	}
}
