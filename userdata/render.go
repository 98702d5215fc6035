package userdata

import "fmt"

// Render returns the user data for s, or every fault of s in one joined error. The
// output holds the join token: whoever stores it must keep it from other users
// (file mode 0600).
func Render(s Spec) ([]byte, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	sums, err := s.sums(s.files())
	if err != nil {
		return nil, err
	}
	out, err := formats[s.format()](s, sums)
	if err != nil {
		return nil, err
	}
	if limit := Limit(s.Cloud); len(out) > limit {
		return nil, fmt.Errorf("userdata: %d bytes, and %s takes at most %d: leave out labels, taints or hooks, or name one --arch", len(out), s.Cloud, limit)
	}
	return out, nil
}
