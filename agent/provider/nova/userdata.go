package nova

import (
	"encoding/json"
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
)

// UserDataFile is the file with the user data of a group's servers.
func UserDataFile(raw json.RawMessage, group cluster.GroupID) (string, error) {
	s, err := section.Parse(raw)
	if err != nil {
		return "", err
	}
	for _, g := range s.Groups {
		if g.Name == string(group) {
			return g.UserData, nil
		}
	}
	return "", fmt.Errorf("groups.yaml has no group %s", group)
}
