package cluster

// Existence is what a cloud says of an instance that it was asked for by its ID; the zero
// value is that it did not say.
type Existence string

// The values of Existence.
const (
	ExistenceUnknown   Existence = ""
	InstanceExists     Existence = "exists"     // in whatever state: stopped, shutting down, in no group
	InstanceTerminated Existence = "terminated" // the cloud still knows it, and says that it has ended
	InstanceNotFound   Existence = "not found"  // whoever asks may see it if there is one, and there is none
	// InstanceUnclaimed is all that a cloud can say which cannot be asked by ID: no node
	// group has the instance.
	InstanceUnclaimed Existence = "unclaimed"
)

// Testimony is what a cloud says of one instance.
type Testimony struct {
	Existence Existence `json:"existence,omitempty"`
	// Why is the cloud's own word for it, or why it is not known.
	Why string `json:"why,omitempty"`
}
