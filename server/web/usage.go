package web

import (
	"cmp"
	"context"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"

	"github.com/ccship/ccship/server/web/chart"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
)

// usagePage is what was used, as charts and as tables.
type usagePage struct {
	page.Layout
	filter
	Ranges   []page.Choice
	Measures []page.Choice
	Stacks   []page.Choice
	Daily    template.HTML
	Legend   []string
	Days     []usedRow
	Week     template.HTML
	Year     template.HTML
	Parts    []breakdown
	Others   bool // there are further parts, each on a page of its own
	Tokens   server.Tokens
	Cost     transcript.Cost
	AsOf     string
	Nothing  bool
	Period   string // what the sums are of
	Moved    string // the last day of the period, if nothing was used in the one asked for
}

// usedRow is what was used on a day, or by what has a name.
type usedRow struct {
	Name   string
	Tokens server.Tokens
	Cost   transcript.Cost
}

// usedRows are sums by name.
type usedRows map[string]*usedRow

func (rows usedRows) add(name string, r server.UsageRow, prices *transcript.Prices) {
	if rows[name] == nil {
		rows[name] = &usedRow{Name: name}
	}
	x := rows[name]
	x.Tokens = x.Tokens.Add(r.Tokens)
	x.Cost = x.Cost.Plus(derive.Cost(prices, r))
}

// breakdown is sums by one name.
type breakdown struct {
	Title string
	Lower string // inside a sentence
	Chart template.HTML
	Rows  []usedRow
}

// measure is what a chart shows of tokens.
type measure struct {
	Key, Name string
	of        func(server.UsageRow) float64
	format    func(float64) string
}

func (v *Viewer) measures() []measure {
	count := func(f float64) string { return page.Tokens(int64(f)) }
	return []measure{
		{"cost", "Cost", func(r server.UsageRow) float64 { return derive.Cost(v.Prices, r).USD }, page.Dollars},
		{"tokens", "All tokens", func(r server.UsageRow) float64 { return float64(r.Tokens.All()) }, count},
		{"output", "Output", func(r server.UsageRow) float64 { return float64(r.Tokens.Output) }, count},
	}
}

// ranges are how many days back a chart goes; 0 is all there is.
var ranges = []struct {
	Key, Name string
	Days      int
}{{"7", "7 days", 7}, {"30", "30 days", 30}, {"90", "90 days", 90}, {"365", "A year", 365}, {"all", "All", 0}}

// stacks are what the columns are made from.
var stacks = []struct{ Key, Name string }{
	{"model", "Model"}, {"project", "Project"}, {"machine", "Machine"}, {"user", "User"}}

// seriesMax is how many names a chart shows separately; the rest is one more series.
const seriesMax = 7

// usageAsk is what the reader asks to see.
type usageAsk struct {
	days    int
	last    time.Time // day of the period, as its midnight in the reader's zone
	measure measure
	stack   string
	many    bool // there are more projects than a page lists
	query   server.UsageQuery
	names   map[string]string // of projects, machines and users, by what rows have
}

// usage is GET /usage?range&measure&by&project&machine&user&model.
func (v *Viewer) usage(w http.ResponseWriter, r *http.Request, who server.Login) error {
	scope := server.ScopeOf(who.User)
	groups, err := groups(r.Context(), v.store, scope, r.URL.Query())
	if err != nil {
		return err
	}
	users, err := userChips(r.Context(), v.store, who, r.URL.Query(), allUsers)
	if err != nil {
		return err
	}
	p := usagePage{Layout: v.Layout(r, who, "Usage", "usage"), filter: readFilter(r.URL.Query(), v.Base, "/", users),
		AsOf: v.Prices.AsOf}
	ask := v.ask(r, &p, groups, users)
	rows, err := v.inPeriod(r.Context(), scope, &ask, &p)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		err = ask.nameUsers(r.Context(), v.store, rows)
	}
	if err != nil {
		return err
	}
	p.Tokens, p.Cost = sumUsage(v.Prices, rows)
	p.Nothing, p.Period = len(rows) == 0, ask.period(p.Moved)
	v.daily(&p, ask, rows)
	v.breakdowns(&p, ask, rows)
	if p.Week, p.Year, err = heatOf(r.Context(), v.store, scope, ask.query, ask.last.Add(-ask.query.Zone)); err != nil {
		return err
	}
	v.Render(w, http.StatusOK, "usage.html", p)
	return nil
}

// columns are what is asked for at once. Of many projects it is only what the columns are made from: all of it would be
// everything that there is.
func (a *usageAsk) columns() []string {
	switch {
	case !a.many:
		return []string{"day", "project", "model", "machine", "user", "long"}
	case a.stack == "model":
		return []string{"day", "model", "long"}
	}
	return []string{"day", a.stack, "model", "long"}
}

func with(q server.UsageQuery, by ...string) server.UsageQuery {
	q.By = by
	return q
}

// ask reads the reader's request, and sets the choices.
func (v *Viewer) ask(r *http.Request, p *usagePage, groups []server.Group, users []server.User) usageAsk {
	q := r.URL.Query()
	a := usageAsk{days: 30, stack: "model", names: map[string]string{}, many: len(groups) >= shown}
	picked := cmp.Or(q.Get("range"), "30")
	for _, x := range ranges {
		if x.Key == picked {
			a.days = x.Days
		}
		p.Ranges = append(p.Ranges, page.Choice{Name: x.Name, On: x.Key == picked,
			URL: v.Base + page.Address("/usage", q, "range", x.Key)})
	}
	list := v.measures()
	a.measure = list[max(0, slices.IndexFunc(list, func(m measure) bool { return m.Key == q.Get("measure") }))]
	for _, m := range list {
		p.Measures = append(p.Measures, page.Choice{Name: m.Name, On: m.Key == a.measure.Key,
			URL: v.Base + page.Address("/usage", q, "measure", m.Key)})
	}
	for _, s := range stacks {
		if s.Key == q.Get("by") {
			a.stack = s.Key
		}
	}
	for _, s := range stacks {
		if s.Key == "user" && len(users) == 0 {
			continue
		}
		p.Stacks = append(p.Stacks, page.Choice{Name: s.Name, On: s.Key == a.stack,
			URL: v.Base + page.Address("/usage", q, "by", s.Key)})
	}
	a.read(p.filter, groups, page.Zone(r), v.Now())
	return a
}

// read takes from a filter what sums are asked for, and names for them from groups.
func (a *usageAsk) read(f filter, groups []server.Group, east time.Duration, now time.Time) {
	of, projects := f.Query(now, east), derive.ProjectsOf(groups)
	a.query = server.UsageQuery{Zone: east, Project: projects.Key(of.Project), Model: of.Model, Machine: of.Machine,
		User: of.User}
	a.end(now.Add(east).UTC().Truncate(24 * time.Hour))
	for _, g := range groups {
		id := cmp.Or(g.Repository, g.ProjectHash)
		a.names[id] = projects.Name(id)
		a.names[g.Machine] = cmp.Or(g.Host, g.Machine, "a plain client")
	}
}

// nameUsers adds the names of the users that rows are of.
func (a *usageAsk) nameUsers(ctx context.Context, st server.Users, rows []server.UsageRow) error {
	var ids []int64
	for i := range rows {
		ids = append(ids, rows[i].User)
	}
	slices.Sort(ids)
	names, err := st.UserNames(ctx, slices.Compact(ids))
	for id, name := range names {
		a.names[strconv.FormatInt(id, 10)] = name
	}
	return err
}

// name is the label under which a row is counted.
func (a *usageAsk) name(by string, r server.UsageRow) string {
	switch by {
	case "project":
		return cmp.Or(a.names[r.Project], r.Name, page.Short(r.Project, 12), "(no project)")
	case "machine":
		return cmp.Or(a.names[r.Machine], r.Machine, "a plain client")
	case "user":
		return cmp.Or(a.names[strconv.FormatInt(r.User, 10)], "(nobody)")
	}
	return cmp.Or(modelName(r.Model), "(no model)")
}

// daily draws the columns.
func (v *Viewer) daily(p *usagePage, a usageAsk, rows []server.UsageRow) {
	totals, byDay := map[string]float64{}, usedRows{}
	cells := map[string]map[string]float64{}
	for _, r := range rows {
		if r.Day == "" {
			continue
		}
		name, value := a.name(a.stack, r), a.measure.of(r)
		totals[name] += value
		if cells[r.Day] == nil {
			cells[r.Day] = map[string]float64{}
		}
		byDay.add(r.Day, r, v.Prices)
		cells[r.Day][name] += value
	}
	p.Legend = largest(totals)
	c := chart.Stacked{ID: "daily", Title: a.measure.Name + " per day",
		Desc: "Columns of " + a.stack + "s; the table below has the numbers.", Series: p.Legend, Format: a.measure.format}
	days := a.calendar(byDay)
	for i, day := range days {
		c.Columns = append(c.Columns, column(day, i, len(days), p.Legend, cells[day]))
		if d := byDay[day]; d != nil {
			p.Days = append(p.Days, *d)
		}
	}
	slices.Reverse(p.Days)
	p.Daily = c.SVG()
}

// largest returns the names with the most, followed by one for all others.
func largest(totals map[string]float64) []string {
	names := sorted(totals)
	if len(names) > seriesMax+1 {
		names = append(names[:seriesMax], "others")
	}
	return names
}

func column(day string, i, n int, series []string, cells map[string]float64) chart.Column {
	t, err := time.Parse(time.DateOnly, day)
	label := day
	if err == nil {
		label = t.Format("Mon, 2 Jan 2006")
	}
	c := chart.Column{Label: label, Values: make([]float64, len(series))}
	for name, value := range cells {
		at := slices.Index(series, name)
		if at < 0 {
			at = len(series) - 1
		}
		c.Values[at] += value
	}
	every := max(1, (n+7)/8)
	if err == nil && (n-1-i)%every == 0 {
		c.Tick = t.Format("2 Jan")
	}
	return c
}

// calendar is every day of the chart, those without anything too.
func (a *usageAsk) calendar(days usedRows) []string {
	last := a.last
	first := last.AddDate(0, 0, 1-a.days)
	if a.days == 0 {
		first = last.AddDate(0, 0, -6)
		for day := range days {
			if t, err := time.Parse(time.DateOnly, day); err == nil && t.Before(first) {
				first = t
			}
		}
		if oldest := last.AddDate(-3, 0, 0); first.Before(oldest) {
			first = oldest
		}
	}
	var out []string
	for t := first; !t.After(last); t = t.AddDate(0, 0, 1) {
		out = append(out, t.Format(time.DateOnly))
	}
	return out
}

// breakdowns sums by one name each.
func (v *Viewer) breakdowns(p *usagePage, a usageAsk, rows []server.UsageRow) {
	for _, s := range stacks {
		if a.many && s.Key != a.stack {
			p.Others = true
			continue
		}
		sums, values := usedRows{}, map[string]float64{}
		for _, r := range rows {
			name := a.name(s.Key, r)
			sums.add(name, r, v.Prices)
			values[name] += a.measure.of(r)
		}
		if len(sums) < 2 && s.Key != "model" && s.Key != "project" {
			continue
		}
		b := breakdown{Title: s.Name, Lower: s.Key}
		c := chart.Bars{ID: "by-" + s.Key, Title: a.measure.Name + " by " + s.Key,
			Desc: "The table next to it has the numbers.", Format: a.measure.format}
		for _, name := range sorted(values) {
			b.Rows = append(b.Rows, *sums[name])
			if len(c.List) < 10 {
				c.List = append(c.List, chart.Bar{Label: name, Value: values[name]})
			}
		}
		b.Chart = c.SVG()
		p.Parts = append(p.Parts, b)
	}
}

// sorted returns the names of values, those with the most first.
func sorted(values map[string]float64) []string {
	return slices.SortedFunc(maps.Keys(values), func(x, y string) int {
		return cmp.Or(cmp.Compare(values[y], values[x]), cmp.Compare(x, y))
	})
}
