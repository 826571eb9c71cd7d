package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

// ErrLastOwner means that a change would leave the server without an owner.
var ErrLastOwner = errors.New("this is the last owner; make another user one first")

// SetRole changes what a user may do, with a key or 0. ErrLastOwner when no owner would be left to manage the server.
func SetRole(ctx context.Context, st server.Users, user server.User, role server.Role, key int64) error {
	if role != server.Owner {
		if err := notLast(ctx, st, user); err != nil {
			return err
		}
	}
	if err := st.SetRole(ctx, user.ID, role, server.By{Key: key, At: time.Now()}); err != nil {
		return fmt.Errorf("change role of %q: %w", user.Name, err)
	}
	return nil
}

// Disable refuses a user's keys and logins from now on, or accepts them again. Errors as of SetRole.
func Disable(ctx context.Context, st server.Users, user server.User, disabled bool, key int64) error {
	if disabled {
		if err := notLast(ctx, st, user); err != nil {
			return err
		}
	}
	if err := st.DisableUser(ctx, user.ID, disabled, server.By{Key: key, At: time.Now()}); err != nil {
		return fmt.Errorf("disable %q: %w", user.Name, err)
	}
	return nil
}

func notLast(ctx context.Context, st server.Users, user server.User) error {
	if user.Role != server.Owner {
		return nil
	}
	list, err := st.Users(ctx)
	if err != nil {
		return fmt.Errorf("list users: %w", err)
	}
	for _, u := range list {
		if u.ID != user.ID && u.Role == server.Owner && u.Disabled.IsZero() {
			return nil
		}
	}
	return ErrLastOwner
}
