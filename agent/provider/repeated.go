package provider

import (
	"context"
	"time"
)

type repeatedKey struct{}

// WithRepeated lets Groups repeat facts that only an operator changes, as long as they are
// younger than age and nothing that it reads says that they have changed: the template of a
// group, its bounds, options and price. The list of a group's machines, with their names and
// addresses, may be repeated only where the cloud shows that each of them is still there and
// that nothing is done to the group; NodeGroup.NamesReadAt then says when they were read.
func WithRepeated(ctx context.Context, age time.Duration) context.Context {
	return context.WithValue(ctx, repeatedKey{}, age)
}

// Repeated is how old such facts may be; 0: everything is to be read anew.
func Repeated(ctx context.Context) time.Duration {
	age, _ := ctx.Value(repeatedKey{}).(time.Duration)
	return age
}
