package lazyregexp_test

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
)

func Example() {
	port := lazyregexp.New(`\A([a-z]+):([0-9]+)\z`)
	fmt.Println(port.MatchString("host:80"), port.FindStringSubmatch("host:80")[2])
	// Output: true 80
}

// TestNothingIsCompiledBeforeUse: an expression that nothing uses is not even read.
func TestNothingIsCompiledBeforeUse(t *testing.T) {
	wrong := lazyregexp.New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression was used")
		}
	}()
	wrong.MatchString("")
}
