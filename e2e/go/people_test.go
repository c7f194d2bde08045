// The same people in every format that a member can read fields of: JSON, Portable and Compact.

package e2e

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/hazelcast/hazelcast-go-client"
	"github.com/hazelcast/hazelcast-go-client/serialization"
	"github.com/hazelcast/hazelcast-go-client/types"
)

type address struct {
	City   string `json:"city"`
	Number int32  `json:"number"`
}

type person struct {
	Name    string   `json:"name"`
	Age     int32    `json:"age"`
	Balance int64    `json:"balance"`
	Height  float64  `json:"height"`
	Active  bool     `json:"active"`
	Address address  `json:"address"`
	Tags    []string `json:"tags"`
}

var people = map[int32]person{
	1: {"Ada", 36, 1 << 40, 1.65, true, address{"London", 1}, []string{"red", "blue"}},
	2: {"Grace", 85, -5, 1.5, true, address{"Paris", 2}, []string{"blue"}},
	3: {"Alan", 41, 0, 1.78, false, address{"London", 1}, []string{"green", "red"}},
	4: {"Édith", 47, 12, 1.42, false, address{"Paris", 2}, []string{}},
	5: {"ada_x", 20, 100, 1.9, true, address{"Oslo", 3}, []string{"yellow"}},
}

const personFactory = 70

type portableAddress struct{ address }

func (*portableAddress) FactoryID() int32 { return personFactory }
func (*portableAddress) ClassID() int32   { return 2 }
func (a *portableAddress) WritePortable(writer serialization.PortableWriter) {
	writer.WriteString("city", a.City)
	writer.WriteInt32("number", a.Number)
}
func (a *portableAddress) ReadPortable(reader serialization.PortableReader) {
	a.City = reader.ReadString("city")
	a.Number = reader.ReadInt32("number")
}

type portablePerson struct{ person }

func (*portablePerson) FactoryID() int32 { return personFactory }
func (*portablePerson) ClassID() int32   { return 1 }
func (p *portablePerson) WritePortable(writer serialization.PortableWriter) {
	writer.WriteString("name", p.Name)
	writer.WriteInt32("age", p.Age)
	writer.WriteInt64("balance", p.Balance)
	writer.WriteFloat64("height", p.Height)
	writer.WriteBool("active", p.Active)
	writer.WritePortable("address", &portableAddress{p.Address})
	writer.WriteStringArray("tags", p.Tags)
}
func (p *portablePerson) ReadPortable(reader serialization.PortableReader) {
	p.Name = reader.ReadString("name")
	p.Age = reader.ReadInt32("age")
	p.Balance = reader.ReadInt64("balance")
	p.Height = reader.ReadFloat64("height")
	p.Active = reader.ReadBool("active")
	p.Address = reader.ReadPortable("address").(*portableAddress).address
	p.Tags = reader.ReadStringArray("tags")
}

type personPortables struct{}

func (personPortables) FactoryID() int32 { return personFactory }
func (personPortables) Create(class int32) serialization.Portable {
	if class == 1 {
		return &portablePerson{}
	}
	return &portableAddress{}
}

type addressSerializer struct{}

func (addressSerializer) Type() reflect.Type { return reflect.TypeOf(address{}) }
func (addressSerializer) TypeName() string   { return "go-address" }
func (addressSerializer) Read(reader serialization.CompactReader) interface{} {
	return address{City: *reader.ReadString("city"), Number: reader.ReadInt32("number")}
}
func (addressSerializer) Write(writer serialization.CompactWriter, value interface{}) {
	a := value.(address)
	writer.WriteString("city", &a.City)
	writer.WriteInt32("number", a.Number)
}

type personSerializer struct{}

func (personSerializer) Type() reflect.Type { return reflect.TypeOf(person{}) }
func (personSerializer) TypeName() string   { return "go-person" }
func (personSerializer) Read(reader serialization.CompactReader) interface{} {
	p := person{
		Name:    *reader.ReadString("name"),
		Age:     reader.ReadInt32("age"),
		Balance: reader.ReadInt64("balance"),
		Height:  reader.ReadFloat64("height"),
		Active:  reader.ReadBoolean("active"),
		Address: reader.ReadCompact("address").(address),
		Tags:    []string{},
	}
	for _, tag := range reader.ReadArrayOfString("tags") {
		p.Tags = append(p.Tags, *tag)
	}
	return p
}
func (personSerializer) Write(writer serialization.CompactWriter, value interface{}) {
	p := value.(person)
	writer.WriteString("name", &p.Name)
	writer.WriteInt32("age", p.Age)
	writer.WriteInt64("balance", p.Balance)
	writer.WriteFloat64("height", p.Height)
	writer.WriteBoolean("active", p.Active)
	writer.WriteCompact("address", p.Address)
	tags := make([]*string, len(p.Tags))
	for i := range p.Tags {
		tags[i] = &p.Tags[i]
	}
	writer.WriteArrayOfString("tags", tags)
}

// formats makes a person a value of each format.
var formats = map[string]func(person) any{
	"json": func(p person) any {
		text, err := json.Marshal(p)
		if err != nil {
			panic(err)
		}
		return serialization.JSON(text)
	},
	"portable": func(p person) any { return &portablePerson{p} },
	"compact":  func(p person) any { return p },
}

// asPerson is any of these values as the person it was made from.
func asPerson(t *testing.T, value any) person {
	t.Helper()
	switch value := value.(type) {
	case serialization.JSON:
		var p person
		must(t, json.Unmarshal(value, &p))
		return p
	case *portablePerson:
		return value.person
	default:
		return value.(person)
	}
}

// peopleClient is a client that knows the people in every format.
func peopleClient(t *testing.T) *hazelcast.Client {
	t.Helper()
	config := clientConfig(shared.address)
	config.Serialization.SetPortableFactories(personPortables{})
	config.Serialization.Compact.SetSerializers(personSerializer{}, addressSerializer{})
	return connect(t, config)
}

func fillPeople(t *testing.T, client *hazelcast.Client, name, format string) *hazelcast.Map {
	t.Helper()
	m, err := client.GetMap(ctx, name)
	must(t, err)
	entries := []types.Entry{}
	for key, p := range people {
		entries = append(entries, types.NewEntry(key, formats[format](p)))
	}
	must(t, m.PutAll(ctx, entries...))
	return m
}
