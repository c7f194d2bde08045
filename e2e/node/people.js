// The same people in every format that a member can read fields of: JSON, Portable and Compact.
'use strict';

const Long = require('long');

const LONDON = { city: 'London', number: 1 };
const PARIS = { city: 'Paris', number: 2 };
const OSLO = { city: 'Oslo', number: 3 };

const person = (name, nickname, age, balance, height, active, address, tags, scores) =>
    ({ name, nickname, age, balance, height, active, address, tags, scores });

const PEOPLE = new Map([
    [1, person('Ada', null, 36, 1099511627776, 1.65, true, LONDON, ['red', 'blue'], [1, 2, 3])],
    [2, person('Grace', 'Amazing', 85, -5, 1.5, true, PARIS, ['blue'], [4])],
    [3, person('Alan', 'Prof', 41, 0, 1.78, false, LONDON, ['green', 'red'], [5, 1])],
    [4, person('Édith', null, 47, 12, 1.42, false, PARIS, [], [])],
    [5, person('ada_x', '50%', 20, 100, 1.9, true, OSLO, ['yellow'], [9, 9])],
]);

class PortableAddress {
    constructor(fields) {
        Object.assign(this, fields, { factoryId: 60, classId: 2 });
    }

    writePortable(writer) {
        writer.writeString('city', this.city);
        writer.writeInt('number', this.number);
    }

    readPortable(reader) {
        this.city = reader.readString('city');
        this.number = reader.readInt('number');
    }
}

class PortablePerson {
    constructor(fields) {
        Object.assign(this, fields, { factoryId: 60, classId: 1 });
    }

    writePortable(writer) {
        writer.writeString('name', this.name);
        writer.writeString('nickname', this.nickname);
        writer.writeInt('age', this.age);
        writer.writeLong('balance', Long.fromNumber(this.balance));
        writer.writeDouble('height', this.height);
        writer.writeBoolean('active', this.active);
        writer.writePortable('address', new PortableAddress(this.address));
        writer.writeStringArray('tags', this.tags);
        writer.writeIntArray('scores', this.scores);
    }

    readPortable(reader) {
        this.name = reader.readString('name');
        this.nickname = reader.readString('nickname');
        this.age = reader.readInt('age');
        this.balance = reader.readLong('balance').toNumber();
        this.height = reader.readDouble('height');
        this.active = reader.readBoolean('active');
        this.address = reader.readPortable('address');
        this.tags = reader.readStringArray('tags');
        this.scores = reader.readIntArray('scores');
    }
}

class CompactAddress {
    constructor(fields) {
        Object.assign(this, fields);
    }
}

class CompactPerson {
    constructor(fields) {
        Object.assign(this, fields);
    }
}

const addressSerializer = {
    getClass: () => CompactAddress,
    getTypeName: () => 'node-address',
    write(writer, address) {
        writer.writeString('city', address.city);
        writer.writeInt32('number', address.number);
    },
    read: (reader) => new CompactAddress({ city: reader.readString('city'), number: reader.readInt32('number') }),
};

const personSerializer = {
    getClass: () => CompactPerson,
    getTypeName: () => 'node-person',
    write(writer, it) {
        writer.writeString('name', it.name);
        writer.writeString('nickname', it.nickname);
        writer.writeInt32('age', it.age);
        writer.writeInt64('balance', Long.fromNumber(it.balance));
        writer.writeFloat64('height', it.height);
        writer.writeBoolean('active', it.active);
        writer.writeCompact('address', new CompactAddress(it.address));
        writer.writeArrayOfString('tags', it.tags);
        writer.writeArrayOfInt32('scores', it.scores);
    },
    read: (reader) => new CompactPerson({
        name: reader.readString('name'),
        nickname: reader.readString('nickname'),
        age: reader.readInt32('age'),
        balance: reader.readInt64('balance').toNumber(),
        height: reader.readFloat64('height'),
        active: reader.readBoolean('active'),
        address: reader.readCompact('address'),
        tags: reader.readArrayOfString('tags'),
        scores: reader.readArrayOfInt32('scores'),
    }),
};

const FORMATS = {
    json: (it) => ({ ...it }),
    portable: (it) => new PortablePerson(it),
    compact: (it) => new CompactPerson(it),
};

/** Configures a client that knows the people and whose numbers are ints. */
const settings = () => ({
    serialization: {
        defaultNumberType: 'integer',
        portableFactories: { 60: (classId) => (classId === 1 ? new PortablePerson() : new PortableAddress()) },
        compact: { serializers: [personSerializer, addressSerializer] },
    },
});

async function fill(map, format) {
    await map.putAll([...PEOPLE].map(([key, it]) => [key, FORMATS[format](it)]));
}

module.exports = { FORMATS, PEOPLE, fill, settings };
