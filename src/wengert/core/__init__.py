"""The ground floor: what every other part of the package stands on."""
