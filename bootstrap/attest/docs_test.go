package attest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// TestMachinesAskForTheName: the user data asks for the listener by the one name of its
// certificate.
func TestMachinesAskForTheName(t *testing.T) {
	if !strings.Contains(userdata.AttestSteps, `"https://`+ServerName+`/v1/$path"`) {
		t.Errorf("the user data does not ask for %s", ServerName)
	}
}

// TestManualHasEveryRule keeps the table of docs/attested-join.md what the code says.
func TestManualHasEveryRule(t *testing.T) {
	page, err := os.ReadFile("../../docs/attested-join.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, c := range Checks {
		fmt.Fprintf(&want, "| `%s` | %s |\n", c.Rule, c.Must)
	}
	if !strings.Contains(string(page), want.String()) {
		t.Errorf("docs/attested-join.md has not this table:\n%s", want.String())
	}
}
