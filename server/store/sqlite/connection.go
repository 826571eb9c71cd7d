package sqlite

import (
	"container/list"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
)

// openConnection returns a pool of connections to a database, each of which keeps up to most statements.
func openConnection(dsn string, most int) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector{c, most}), nil
}

type connector struct {
	driver.Connector
	most int
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	x, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	of, ok := x.(connected)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a connection is a %T", x), x.Close())
	}
	return &conn{connected: of, most: c.most, kept: map[string]*list.Element{}}, nil
}

// connected is what the driver's connections can do.
type connected interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// statement is one of the driver's.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// conn is a connection, used by one goroutine at a time.
type conn struct {
	connected
	most  int
	kept  map[string]*list.Element // of order, whose values are *compiled
	order list.List                // most recently used in front
}

// compiled is a statement that is kept.
type compiled struct {
	statement
	query string
	busy  bool // its rows are being read
}

// keepable says that a statement can be run again as it was compiled. SQLite compiles others, as PRAGMA, anew each
// time, and those that change the schema are run once.
func keepable(query string) bool {
	query = strings.TrimLeft(query, " \n\t")
	for _, word := range []string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "BEGIN", "COMMIT", "ROLLBACK"} {
		if len(query) >= len(word) && strings.EqualFold(query[:len(word)], word) {
			return true
		}
	}
	return false
}

// find returns the compiled form of a statement. It is nil for one that is not kept, or whose rows are being read.
func (c *conn) find(ctx context.Context, query string) (*compiled, error) {
	if e := c.kept[query]; e != nil {
		s := e.Value.(*compiled) //nolint:forcetypeassert // order has nothing else
		if s.busy {
			return nil, nil //nolint:nilnil // compiled once more, for once
		}
		c.order.MoveToFront(e)
		return s, nil
	}
	if c.most == 0 || !keepable(query) {
		return nil, nil //nolint:nilnil // see keepable
	}
	x, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	of, ok := x.(statement)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a statement is a %T", x), x.Close())
	}
	s := &compiled{statement: of, query: query}
	c.kept[query] = c.order.PushFront(s)
	return s, c.shrink()
}

// shrink lets go of the statements that were used longest ago, beyond most. Those whose rows are being read stay.
func (c *conn) shrink() error {
	for e := c.order.Back(); e != nil && c.order.Len() > c.most; {
		s, before := e.Value.(*compiled), e.Prev() //nolint:forcetypeassert // order has nothing else
		if !s.busy {
			c.order.Remove(e)
			delete(c.kept, s.query)
			if err := s.Close(); err != nil {
				return err
			}
		}
		e = before
	}
	return nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.find(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.connected.ExecContext(ctx, query, args)
	}
	return s.ExecContext(ctx, args)
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.find(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.connected.QueryContext(ctx, query, args)
	}
	r, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.busy = true
	return rows{r, s}, nil
}

// rows are those of a statement that is kept.
type rows struct {
	driver.Rows
	of *compiled
}

// Close implements driver.Rows.
func (r rows) Close() error {
	err := r.Rows.Close()
	r.of.busy = false
	return err
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	var errs []error
	for e := c.order.Front(); e != nil; e = e.Next() {
		errs = append(errs, e.Value.(*compiled).Close()) //nolint:forcetypeassert // order has nothing else
	}
	c.order.Init()
	clear(c.kept)
	return errors.Join(append(errs, c.connected.Close())...)
}
