package fake_test

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/providertest/fakeworld"
)

func TestTheFakeKeepsTheContract(t *testing.T) {
	providertest.Suite{New: fakeworld.New, Settle: fakeworld.Settle}.Run(t)
}
