package services

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/machine"
)

func (c *corpus) tuneLogs(*machine.Config) {}

func (c *corpus) testLogs(t *testing.T) {}
