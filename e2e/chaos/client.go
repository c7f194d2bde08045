// What a client is, and the driver's own: Hazelcast's stock client for Go.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hazelcast/hazelcast-go-client"
	"github.com/hazelcast/hazelcast-go-client/hzerrors"
	"github.com/hazelcast/hazelcast-go-client/logger"
	"github.com/hazelcast/hazelcast-go-client/sql"
	"github.com/hazelcast/hazelcast-go-client/types"
)

// client makes one operation at a time, as a thread of a client does.
type client interface {
	do(o op) result
}

// connected is a client, whose threads share its connections.
type connected interface {
	// caller is one more thread.
	caller() client
	stop()
}

// Errors that say that nothing was made: the request was not taken, however often the client sent it.
var refusals = []error{
	hzerrors.ErrWrongTarget, hzerrors.ErrTargetNotMember, hzerrors.ErrHazelcastInstanceNotActive, hzerrors.ErrRetryableHazelcast,
	hzerrors.ErrPartitionMigrating,
}

// repeated are operations that the client may have sent twice: the first may have been taken, though the last was not.
var repeated = map[string]bool{"tryLock": true, "unlock": true, "sqlUpdate": true}

// kinds are errors that are told apart in figures.
var kinds = map[string]error{
	"WrongTarget": hzerrors.ErrWrongTarget, "TargetNotMember": hzerrors.ErrTargetNotMember,
	"HazelcastInstanceNotActive": hzerrors.ErrHazelcastInstanceNotActive, "RetryableHazelcast": hzerrors.ErrRetryableHazelcast,
	"PartitionMigrating": hzerrors.ErrPartitionMigrating, "IndeterminateOperationState": hzerrors.ErrIndeterminateOperationState,
	"TargetDisconnected": hzerrors.ErrTargetDisconnected, "ClientOffline": hzerrors.ErrClientOffline,
	"ClientNotActive": hzerrors.ErrClientNotActive, "IO": hzerrors.ErrIO, "RetryableIO": hzerrors.ErrRetryableIO,
	"TookTooLong": context.DeadlineExceeded,
}

// connection is a client of the stock kind, which several of the driver's clients may share.
type connection struct {
	hazelcast *hazelcast.Client
}

// connect starts a client; unisocket sends everything through the first member.
func connect(name string, addresses []string, unisocket bool) (*connection, error) {
	config := hazelcast.NewConfig()
	config.ClientName = name
	config.Cluster.Network.SetAddresses(addresses...)
	config.Cluster.ConnectionStrategy.Timeout = types.Duration(10 * time.Minute)
	config.Cluster.Unisocket = unisocket
	config.Logger.Level = logger.OffLevel
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	started, err := hazelcast.StartNewClientWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &connection{started}, nil
}

func (c *connection) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), operationLimit)
	defer cancel()
	_ = c.hazelcast.Shutdown(ctx)
}

// caller is one thread of a client, as locks know it.
type caller struct {
	connection *connection
	maps       map[string]*hazelcast.Map
	locks      context.Context
	limit      time.Duration
}

// caller gives the client one more thread.
func (c *connection) caller() client { return c.callerWithin(operationLimit) }

// callerWithin gives the client one more thread, which waits so long for an answer.
func (c *connection) callerWithin(limit time.Duration) client {
	var any hazelcast.Map
	return &caller{connection: c, maps: map[string]*hazelcast.Map{}, locks: any.NewLockContext(context.Background()), limit: limit}
}

// mapRegisters makes the mapping that SQL needs.
func mapRegisters(settings *settings, c *cluster) error {
	made, err := connect("mapping", c.addresses(), false)
	if err != nil {
		return err
	}
	defer made.stop()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	registers := settings.newWorkload("").registers
	text := "CREATE OR REPLACE MAPPING " + registers + " TYPE IMap OPTIONS ('keyFormat' = 'varchar', 'valueFormat' = 'varchar')"
	result, err := made.hazelcast.SQL().Execute(ctx, text)
	if err != nil {
		return fmt.Errorf("making the mapping of %s: %w", registers, err)
	}
	return result.Close()
}

func (c *caller) do(o op) result {
	ctx, cancel := context.WithTimeout(c.locks, c.limit+time.Duration(o.WaitMillis)*time.Millisecond)
	defer cancel()
	r, err := c.make(ctx, o)
	if err == nil {
		r.Outcome = acknowledged
		return r
	}
	r = result{Outcome: unknown, Error: kindOf(err)}
	for _, refusal := range refusals {
		if errors.Is(err, refusal) && !repeated[o.Kind] {
			r.Outcome = refused
		}
	}
	return r
}

func (c *caller) make(ctx context.Context, o op) (result, error) {
	if o.Kind == "sqlUpdate" {
		updated, err := c.connection.hazelcast.SQL().Execute(ctx, "UPDATE "+o.Map+" SET this = ? WHERE __key = ?", o.Value, o.Key)
		if err != nil {
			return result{}, err
		}
		return result{Truth: updated.UpdateCount() > 0}, updated.Close()
	}
	m := c.maps[o.Map]
	if m == nil {
		var err error
		if m, err = c.connection.hazelcast.GetMap(ctx, o.Map); err != nil {
			return result{}, err
		}
		c.maps[o.Map] = m
	}
	switch o.Kind {
	case "get":
		return ofValue(m.Get(ctx, o.Key))
	case "put":
		return ofValue(m.Put(ctx, o.Key, o.Value))
	case "set":
		return result{}, m.Set(ctx, o.Key, o.Value)
	case "putIfAbsent":
		return ofValue(m.PutIfAbsent(ctx, o.Key, o.Value))
	case "replaceIfSame":
		return ofTruth(m.ReplaceIfSame(ctx, o.Key, o.Expected, o.Value))
	case "remove":
		return ofValue(m.Remove(ctx, o.Key))
	case "tryLock":
		return ofTruth(m.TryLockWithTimeout(ctx, o.Key, time.Duration(o.WaitMillis)*time.Millisecond))
	case "unlock":
		err := m.Unlock(ctx, o.Key)
		if errors.Is(err, hzerrors.ErrIllegalMonitorState) {
			return result{Truth: false}, nil
		}
		return ofTruth(err == nil, err)
	}
	return result{}, errors.New("no such operation: " + o.Kind)
}

func ofValue(value interface{}, err error) (result, error) {
	text, _ := value.(string)
	return result{Value: text}, err
}

func ofTruth(truth bool, err error) (result, error) { return result{Truth: truth}, err }

func kindOf(err error) string {
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			return name
		}
	}
	var statement *sql.Error
	if errors.As(err, &statement) {
		return fmt.Sprintf("SQL %d", statement.Code)
	}
	if errors.Is(err, hzerrors.ErrSQL) {
		return "SQL"
	}
	return err.Error()
}
