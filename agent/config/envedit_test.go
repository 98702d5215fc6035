package config

import "testing"

// TestSetInEnvFile: a setting takes the place of its example line, and an operator's own line
// stays as it is.
func TestSetInEnvFile(t *testing.T) {
	for _, c := range [][3]string{
		{"# x\n#AUTOSCALER_PROVIDER=asg\n#AUTOSCALER_LISTEN=off\n", "nova", "# x\nAUTOSCALER_PROVIDER=nova\n#AUTOSCALER_LISTEN=off\n"},
		{"AUTOSCALER_PROVIDER=magnum\n", "nova", "AUTOSCALER_PROVIDER=magnum\n"},
		{"AUTOSCALER_PROVIDER='magnum' # mine", "nova", "AUTOSCALER_PROVIDER='magnum' # mine"},
		{"A=b", "two words", "A=b\nAUTOSCALER_PROVIDER=\"two words\"\n"},
		{"", "$1", "AUTOSCALER_PROVIDER=\"\\$1\"\n"},
	} {
		got, err := SetInEnvFile(c[0], "AUTOSCALER_PROVIDER", c[1])
		if err != nil || got != c[2] {
			t.Errorf("%q set to %q: %q, %v; want %q", c[0], c[1], got, err, c[2])
		}
		if again, err := SetInEnvFile(got, "AUTOSCALER_PROVIDER", c[1]); err != nil || again != got {
			t.Errorf("%q is not left alone: %q, %v", got, again, err)
		}
	}
}
