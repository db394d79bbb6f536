// Map.groupBy, which the oldest Node.js that runs the tests has not.
export function grouped(list, keyOf) {
    const groups = new Map();
    for (const item of list) {
        const key = keyOf(item);
        groups.set(key, [...(groups.get(key) ?? []), item]);
    }
    return groups;
}
