package statefile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/statefile"
)

// A torn file is set aside, and the agent starts empty.
func ExampleFile_Load() {
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }() // a directory of its own
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte(`{"version":1,"mem`), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	state, err := statefile.In(dir).Load(time.Unix(1234, 0))
	_, aside := os.Stat(filepath.Join(dir, "state.json.bad-1234"))
	fmt.Println(err != nil, aside == nil, len(state.Specs))
	// Output: true true 0
}
