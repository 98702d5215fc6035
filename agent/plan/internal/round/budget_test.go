package round

import "testing"

// TestParts: every part has a name and a budget, and is counted and told of apart from the others.
func TestParts(t *testing.T) {
	if len(Parts()) != int(partCount) {
		t.Fatalf("%d parts, want %d", len(Parts()), partCount)
	}
	var spent StepsSpent
	names := map[string]bool{}
	for i, p := range Parts() {
		spent.Add(p, i+1)
		if names[p.String()] || p.String() == "" || p.Budget() <= 0 || spent.Of(p) != i+1 || !spent.TellOnce(p) || spent.TellOnce(p) {
			t.Errorf("%s: a budget of %d, of which %d are spent", p, p.Budget(), spent.Of(p))
		}
		names[p.String()] = true
	}
}
