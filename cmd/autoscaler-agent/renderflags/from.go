package renderflags

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/joinfile"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// besideFrom are the flags that --from leaves to the caller: everything else is as the user data says.
var besideFrom = []string{"from", "kubernetes-version", "api-server-version", "kubeconfig", "join-file", "endpoint", "checksum", "versions", "out", "env-file"}

// againstFrom names the first flag that --from does not go with; empty: none.
func (f *Flags) againstFrom() string {
	name := ""
	f.flags.Visit(func(given *pflag.Flag) {
		if name == "" && !slices.Contains(besideFrom, given.Name) {
			name = given.Name
		}
	})
	return name
}

// again renders the user data of a file for another version of Kubernetes. Join values stay as they are, unless a join
// file is named.
func (f *Flags) again(c *cobra.Command) ([]byte, error) {
	text, err := ReadInput(c, f.from)
	if err != nil {
		return nil, err
	}
	s, err := userdata.SpecOf(text)
	if errors.Is(err, userdata.ErrNoSettings) {
		err = fmt.Errorf("%w: render it once with the flags that it was made with", err)
	}
	if err != nil {
		return nil, err
	}
	if s.APIServerVersion, err = f.server.VersionBeside(c.Context(), f.joinFile); err != nil {
		return nil, err
	}
	if f.Version == "" {
		f.Version = s.APIServerVersion
	}
	if f.Version == "" {
		return nil, errors.New("which version of Kubernetes it is for is not known: give --kubernetes-version, for example --kubernetes-version v1.36.3")
	}
	if f.flags.Changed("join-file") {
		perServer := s.Join.Token == userdata.TokenPlaceholder
		join, err := joinfile.Read(f.joinFile, s.Join.Attest == "" && !perServer)
		if err != nil {
			return nil, err
		}
		s.Join.Endpoint, s.Join.CACertHashes = join["JOIN_ENDPOINT"], flagvalue.List(join["JOIN_CERT_HASH"])
		if s.Join.Attest == "" && !perServer {
			s.Join.Token = join["JOIN_TOKEN"]
		}
	}
	if f.Endpoint != "" {
		s.Join.Endpoint = f.Endpoint
	}
	if err := f.ReadFiles(); err != nil {
		return nil, err
	}
	s = s.For(f.Version)
	s.Downloads.Table = f.downloads.Table
	for file, sum := range f.checksums {
		s.Downloads.SHA256[file] = sum
	}
	return userdata.Render(s)
}
