package provider

import (
	"context"
	"time"
)

type repeatedKey struct{}

// WithRepeated lets a Groups repeat what it read at most so long ago and what only an
// operator changes, where nothing that it reads says that it has changed: what the next machine of
// a group is made of, its bounds, options and price. For machines that is allowed only
// where the cloud shows of each that it is still there, and of the group that nothing is
// done to it.
func WithRepeated(ctx context.Context, age time.Duration) context.Context {
	return context.WithValue(ctx, repeatedKey{}, age)
}

// Repeated is how old such facts may be; 0: everything is to be read anew.
func Repeated(ctx context.Context) time.Duration {
	age, _ := ctx.Value(repeatedKey{}).(time.Duration)
	return age
}
