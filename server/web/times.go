package web

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript/session"
)

// mostTimes is how many calls of a page are asked for.
const mostTimes = 2 * thread.PageLines

// outlineTimes reads how long the calls took whose results are on some lines of a stream's newest view.
func outlineTimes(ctx context.Context, st server.Moments, x server.Session, from,
	to int64) (map[int64][]thread.Times, error) {
	list, err := st.Moments(ctx, server.MomentQuery{Owner: x.Owner, Stream: x.ID, From: from, To: to, Limit: mostTimes,
		Kinds: []string{string(session.TimelineTool), string(session.ToolError), string(session.ToolRefusal)}})
	if err != nil {
		return nil, fmt.Errorf("read times of calls: %w", err)
	}
	out := map[int64][]thread.Times{}
	for _, raw := range list {
		var m session.Moment
		if err := json.Unmarshal(raw.Data, &m); err != nil {
			return nil, fmt.Errorf("read times of calls: %w", err)
		}
		out[raw.Line] = append(out[raw.Line], thread.Times{Tool: m.Tool, MayWait: m.MayWait,
			Took: time.Duration(m.Took) * time.Millisecond, Waited: time.Duration(m.Waited) * time.Millisecond})
	}
	return out, nil
}
