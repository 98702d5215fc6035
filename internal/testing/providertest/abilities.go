package providertest

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// What follows are abilities of a World beyond World itself, each for the cases that
// name it. A World has an ability by having its method; a case whose ability is missing
// is skipped, so a cloud that cannot play it names the case in Suite.Cannot.

// Forms are all the ways in which the provider ID of an instance is written on Nodes, by
// kubelets, cloud controller managers of any age, and by hand.
type Forms interface {
	Forms(id cluster.InstanceID) []string
}

// FailLaunches lets no machine start from now on, for a reason that is neither a quota
// nor capacity: an image that is gone, a flavor that does not fit it.
type FailLaunches interface{ FailLaunches(t testing.TB, on bool) }

// LimitCapacity lets the cloud have no more machines, of any kind and in any zone.
type LimitCapacity interface {
	LimitCapacity(t testing.TB, on bool)
}

// BreakTemplate lets what the next machine of Workers is made of not be read for now.
type BreakTemplate interface {
	BreakTemplate(t testing.TB, on bool)
}

// RefuseOneDelete lets the provider be refused one of its next deletions of instances,
// whichever, and that once.
type RefuseOneDelete interface{ RefuseOneDelete(t testing.TB) }

// ExpireAfter lets so many more calls of the cloud's API succeed; then the credentials
// are expired until Expire(false).
type ExpireAfter interface {
	ExpireAfter(t testing.TB, calls int)
}

// Lag lets every read show the world as it is now, for as long as it is on. Writes do
// what they do.
type Lag interface{ Lag(t testing.TB, on bool) }

// Hang lets no call of the cloud's API have an answer.
type Hang interface{ Hang(t testing.TB, on bool) }

// LoseAnswer lets the next call that changes something be done and its answer lost.
type LoseAnswer interface{ LoseAnswer(t testing.TB) }

// Pause lets the cloud itself start no machines in Workers, because somebody said so.
type Pause interface{ Pause(t testing.TB, on bool) }

// The label and the taint of Furnish.
var (
	FurnishLabel = [2]string{"example.com/pool", "batch"}
	FurnishTaint = cluster.Taint{Key: "example.com/dedicated", Value: "batch", Effect: "NoSchedule"}
)

// Furnish lets the next machines of Workers have FurnishLabel and FurnishTaint, said
// where an operator of this cloud would say it.
type Furnish interface{ Furnish(t testing.TB) }

// ChangeTemplate lets the next machines of Workers be of another kind than those that
// are there: another image, another type.
type ChangeTemplate interface{ ChangeTemplate(t testing.TB) }

// RotateJoin lets the user data of Workers have other join values, and no other change.
type RotateJoin interface{ RotateJoin(t testing.TB) }

// ChangeUserData lets the user data of Workers be other ones, and not by their join values.
type ChangeUserData interface{ ChangeUserData(t testing.TB) }

// ability is the world's, or the case is skipped.
func ability[T any](s *stage) T {
	s.Helper()
	a, ok := s.w.(T)
	if !ok {
		s.Skipf("the world has no method of %T", (*T)(nil))
	}
	return a
}
